#!/bin/bash
python p.py "$@" $# "$1" ${10} "$*" ${@:2:2} "${@: -1}"
set -- --new "b c" "" d
python p.py "$@" $# $@ "x$@y" "$*"
shift 2
python p.py "$@" ${1:-none} ${2} ${9:-nine}
for a; do L="$L[$a]"; done
f() { python p.py "$@" $1 $#; }
f "q r" $*
set -- 
python p.py "$@" "$#" end
