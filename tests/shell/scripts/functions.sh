#!/bin/bash
LR=1e-4
append() {
  local -n target=$1
  shift
  target+=("$@")
}
options() {
  local name=$1 lr=${2:-$LR}
  if [ "$name" = small ]; then
    echo "--layers 2 --lr $lr"
    return 0
  fi
  echo "--layers 12 --lr ${lr}"
}
function launch {
  local LR=9
  python train.py --job "$1" "${@:2}" --lr $LR --count $#
}
ARGS=()
append ARGS --one "a b" --two
launch first $(options small) "${ARGS[@]}"
launch "second job" $(options big 3e-4)
echo $LR
python train.py --lr $LR
