#!/bin/bash
A=x B= C=10
[ -z "$B" ] && R1=empty || R1=full
[[ $A == x* && ! $A == xy ]] && R2=pattern
[[ $C =~ ^([0-9])([0-9]+)$ ]] && R3=${BASH_REMATCH[2]}
if [ "$A" = x -a $C -ge 10 ]; then R4=and; fi
if [ ! -n "$B" ] || false; then R5=not; fi
if ! [[ $A < w ]]; then R6=order; fi
[[ -v A ]] && R7=isset
[[ ( $A == y || $C -eq 10 ) && -z $B ]] && R8=group
test $C -lt 5 || R9=test
if [ $B ]; then R10=yes; else R10=no; fi
true && false || R11=or
! false && R12=neg
[[ "$A" == "x*" ]] || R13=literal
[[ $A == @(x|y) ]] && R14=extglob
[[ abc == a?c && abc != [!a]* ]] && R15=glob
[ $UNSET -gt 1 ] 2>/dev/null && R16=wrong || R16=error
P="a*"; [[ abc == $P ]] && R17=expanded; [[ abc == "$P" ]] || R18=quoted
{ [ 1 -eq 1 ] && [ 2 -ne 2 ]; } || R19=block
if [[ $C -gt 5 ]] && (( C < 20 )); then R20=mixed; fi
python l.py $R1 $R2 $R3 $R4 $R5 $R6 $R7 $R8 $R9 $R10 $R11 $R12 $R13 $R14 $R15 $R16 $R17 $R18 $R19 $R20 $?
