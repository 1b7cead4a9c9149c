#!/bin/bash
FILE=/data/corpus/wiki.en.jsonl.gz
NAME="Llama-3.1_70B Instruct"
V=abc
ref=V
echo ${#FILE}
python t.py ${FILE##*/} ${FILE#*/} ${FILE%.*} ${FILE%%.*} "${NAME// /-}" ${NAME/-/_} "${NAME,,}" "${NAME^^}" \
  ${V^} ${FILE:6:6} ${FILE: -2} ${FILE:6} "${NAME/#Llama/L}" "${NAME/%Instruct/Base}" ${!ref} ${FILE/wiki*json/X} \
  ${UNSET-dash} ${EMPTY:-colon} ${V:+set} ${V+set2} ${UNSET:+no} ${#NAME} "${FILE//[aeiou]/}" "${NAME:0:5}"
: ${NEW:=created by default}
python t.py $NEW "${NEW}" ${V:0:1}${V: -1} "${NAME%%[[:space:]]*}" ${FILE//\//_}
