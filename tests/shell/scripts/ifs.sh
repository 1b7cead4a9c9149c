#!/bin/bash
LIST="a:b::c d"
IFS=: 
set -- $LIST
python i.py "$@" $#
IFS=', ' read -r -a PARTS <<< "x, y,z  w"
IFS=$' \t\n'
python i.py "${PARTS[@]}" ${#PARTS[@]}
IFS=,
JOINED="${PARTS[*]}"
unset IFS
python i.py $JOINED --split "$JOINED"
read A B C <<< "one two three four"
python i.py "$A" "$B" "$C"
SIZES=$(IFS=x; echo "${PARTS[*]}")
python i.py $SIZES
