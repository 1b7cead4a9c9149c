#!/bin/bash
PREFIX=data
python b.py {1..4} {a,b}c pre{x,y}post {01..03} {5..1..2} "{1..3}" {a..e..2} x{1,2}{3,4} ${PREFIX}_{train,valid}.bin \
  {single} {} {a,} "q"{r,s} {$PREFIX,other} a{b,c{d,e}f}g {1..2}{3..4}
