"""What a migration changes, on one page: the data of it, and the two forms it is written in.

`build.of_conversion` and `build.of_two` gather the data (`model.Report`); ``html`` and ``markdown`` lay it out with the
templates under ``templates/report``. Every text in the data is plain and of one line: what steers a terminal or turns
the direction of a text is shown as an escape.

Use::

    done = api.convert(source, "torchtitan@0.2.2")
    report = of_conversion(source, done, Choices(gpu="h100-80gb"))
    Path("report.html").write_text(html.page(report))
"""
