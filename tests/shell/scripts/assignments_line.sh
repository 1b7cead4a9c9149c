#!/bin/bash
W=${W:-64}
TP=4 PP=2            # two on one line
python a.py --tp "$TP" --pp "$PP"
A=(1 2) B="x y"
python b.py "${A[@]}" "$B" && python c.py $TP
if [ "$W" = 64 ]; then EP=8 ETP=1
python d.py $EP $ETP; fi
X=1 Y=2
python e.py $X $Y 2>&1 | cat
Z=3 python f.py $Z
Q=1 R=2 \
  python g.py "$Q$R"
