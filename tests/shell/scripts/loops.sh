#!/bin/bash
ARGS=""
for size in 1 2 {4..6}; do
  [[ $size == 5 ]] && continue
  ARGS="$ARGS --size-$size"
done
for ((i=0; i<3; i++)); do
  STAGES+="${i},"
  ((i == 1)) && break
done
n=3
while [ $n -gt 0 ]; do
  DOWN+=($n)
  n=$((n-1))
done
until (( n >= 2 )); do let n+=1; done
for name in "a b" c; do
  for inner in x y; do
    [ "$inner" = y ] && continue 2
    LIST+=("$name$inner")
  done
done
python train.py $ARGS --stages ${STAGES%,} --down ${DOWN[*]} --n $n "${LIST[@]}"
