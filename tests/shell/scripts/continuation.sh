#!/bin/bash
python c.py --a 1 \
    --b 2 \
  --c "x \
y" --d 'x \
y' \

ARGS="--p \
 --q"
python c.py $ARGS "$ARGS" \
   --last
python c.py --e \
# comment ends it
true
if [ 1 = 1 ] \
   && [ 2 = 2 ]; then
  python c.py --then; fi
python \
  c.py
