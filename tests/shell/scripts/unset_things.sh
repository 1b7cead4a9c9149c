#!/bin/bash
ARGS=(--data $DATA --x "$EMPTY" ${MORE} "${NOTHING[@]}" ${NOTHING[@]} --end)
python u.py ${ARGS[@]} --count ${#ARGS[@]}
python u.py "${ARGS[@]}" $ALSO --z ${A}${B} ""$A
FLAGS=
python u.py $FLAGS --one "${FLAGS}" ${FLAGS:---default} ${FLAGS:-"a b"} ${FLAGS:-a b} "${FLAGS:-a b}" ${FLAGS:-"$FLAGS"}
