#!/bin/bash
NAME=$(basename /a/b/model.json .json)
DIR=$(dirname /a/b/model.json)
NUM=$(seq 1 3)
UP=$(echo "$NAME" | tr a-z A-Z)
FIELD=`echo a:b:c | cut -d: -f2`
TEXT=$(cat <<EOF
--one $NAME
--two "x y"
EOF
)
FMT=$(printf '%s-%03d' run 7)
printf -v OUT '%s,' a b c
NESTED=$(echo $(basename $(dirname /x/y/z)))
OLD=`basename \`dirname /x/y/z\``
LEN=$(echo -n hello | wc -c)
TWICE="$(echo "$(echo "in  ner")")"
python s.py $NAME $DIR $NUM "$NUM" $UP $FIELD $TEXT $FMT $OUT $NESTED $OLD $LEN "$TWICE" $(echo a b) "$(echo a b)"
