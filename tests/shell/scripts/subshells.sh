#!/bin/bash
A=1
( A=2; python s.py $A )
{ A=3; }
python s.py $A
echo x | A=4
python s.py $A &
wait
A=5 true
python s.py $A
B=$(A=6; echo $A)
python s.py $A $B
f() ( A=7; python s.py $A )
f
python s.py $A; python s.py last || exit 1
cd /tmp && python s.py cd
exit 0
python s.py never
