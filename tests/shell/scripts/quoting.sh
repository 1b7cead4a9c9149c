#!/bin/bash
X='single $X `no` \n'
Y="double \$X \`no\` \"q\" \\ \n"
Z=$'ansi\ttab\x41\'s'
W=plain\ space\$
IN="  lead  and trail  "
python q.py "$X" "$Y" "$Z" $W $IN "$IN" '' "" a""b 'c'"d"e\ f "a'b" 'a"b' \
  --json '{"a": [1, 2], "b": "c d"}' --glob "*.json" --hash a#b#c --eq=--x=$W --tilde a~b \
  "multi
line" --dollar $ --percent 50% --at user@host --brace {} --bang !x --caret ^a
# a comment with 'quotes" that do not match
python q.py "${IN# }" "${IN%% }" x"$IN"y x${IN}y
