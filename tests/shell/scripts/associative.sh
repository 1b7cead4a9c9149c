#!/bin/bash
declare -A HIDDEN=([small]=512 [large]=4096)
declare -A LAYERS
LAYERS[small]=4
LAYERS["large"]=32
declare -i TOTAL=3*4
declare -a SIZES=(one "two three" four)
SIZES[5]=six
SIZES[1]+=" more"
for size in small large; do
  python train.py --hidden ${HIDDEN[$size]} --layers "${LAYERS[$size]}" --total $TOTAL
done
unset 'SIZES[0]'
python train.py "${SIZES[@]}" ${#SIZES[@]} "${!SIZES[@]}" "${SIZES[-1]}" "${SIZES[@]:1:2}" "${SIZES[*]}" ${SIZES[1]}
