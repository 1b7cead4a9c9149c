"""The codes of the shell reader's findings (R060 to R089): one line and the longer documentation of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """Documentation of one code, as ``ttx explain`` prints it."""

    meaning: str
    explanation: str
    example: str
    fix: str


CODES: dict[str, Code] = {
    "R060": Code(
        "The script has a syntax error.",
        "Part of the text is not bash. What could be understood around it was read; what the broken part would have "
        "set or started is not known.",
        "if [ $TP -gt 1 ]; then  # and no fi",
        "Check the script with `bash -n`.",
    ),
    "R061": Code(
        "A variable that is not set expands to nothing in a program's arguments.",
        "The script is read as bash would run it in an environment that holds only what was passed with --set. A "
        "variable that is set nowhere expands to nothing; unquoted, its word vanishes and the option before it takes "
        "the next word as its value.",
        "--data-path $DATA_PATH, with DATA_PATH set nowhere",
        "Pass --set NAME=value, or a positional parameter with --args.",
    ),
    "R062": Code(
        "Quote characters reach the program as part of an argument.",
        "Quotes that come out of a variable or array element are ordinary characters for bash: an element "
        "\"--split '99,1,0'\" expanded without quotes passes the two words --split and '99,1,0', quotes included.",
        "ARGS=(\"--split '99,1,0'\"); torchrun train.py ${ARGS[@]}",
        'Write the option and its value as two words of the array and expand it as "${ARGS[@]}".',
    ),
    "R063": Code(
        "A condition cannot be decided from the text; both branches were read.",
        "The condition depends on a file, another program or a value that only the machine knows. Variables that the "
        "branches set differently are unknown from there on; programs started in either branch are all listed.",
        'if [[ "$(hostname)" == node* ]]; then ...',
        "Pass the variable of the condition with --set NAME=value.",
    ),
    "R064": Code(
        "A sourced or called script could not be read.",
        "The script reads another file that was not found beside it, or whose name is not known. What that file sets "
        "is missing.",
        "source ./env.sh",
        "Put the file beside the script, or pass what it sets with --set NAME=value.",
    ),
    "R065": Code(
        "Reading stopped at a limit.",
        "The script is larger, nests deeper, loops longer or grows bigger than a launch script does. What was read up "
        "to that point is used.",
        "while true; do :; done",
        "Simplify the script, or pass the arguments as plain text.",
    ),
    "R066": Code(
        "An arithmetic expression is wrong.",
        "Bash would stop with an error here: division by zero, a missing operand or an unbalanced parenthesis.",
        "$(( GBS / DP )) with DP=0",
        "Set the variables of the expression with --set NAME=value, or correct it.",
    ),
    "R067": Code(
        "The script stops before the launch.",
        "With the given variables and positional parameters the script exits, so that nothing after that point runs.",
        'if [ -z "$1" ]; then echo usage; exit 1; fi',
        "Pass the variables or positional parameters that the script asks for.",
    ),
    "R068": Code(
        "A required variable is not set.",
        "${NAME:?message} ends the script when NAME is not set or empty.",
        "${DATA_PATH:?set DATA_PATH}",
        "Pass --set NAME=value.",
    ),
    "R069": Code(
        "A construct is not evaluated.",
        "The construct depends on more than the text (process substitution, select, another program's output used as "
        "code). It was skipped; what it would set stays unknown.",
        'eval "$(python config.py)"',
        "Pass what it sets with --set NAME=value.",
    ),
    "R070": Code(
        "The script has Windows line ends.",
        "Bash would take the carriage return as part of the last word of every line. The text was read as if the line "
        "ends were plain.",
        "--num-layers 32\\r",
        "Convert the file with dos2unix.",
    ),
    "R071": Code(
        "A placeholder stands where a value belongs.",
        "<...> after = is a redirection for bash, not a value. It was read as a value that is still to be filled in.",
        "CHECKPOINT_PATH=<Specify path>",
        "Replace the placeholder, or pass --set NAME=value.",
    ),
    "R072": Code(
        "A backslash does not continue the line.",
        "A backslash continues a line only when it is the very last character. With spaces after it, bash passes a "
        "word that holds one space and ends the command; the following lines become a command of their own.",
        "--bf16 \\ (with a space after the backslash)",
        "Remove the characters after the backslash.",
    ),
}
"""Documentation by code."""
