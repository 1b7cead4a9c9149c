#!/bin/bash
while getopts "n:g:vh" opt; do
  case $opt in
    n) NODES=$OPTARG ;;
    g) GPUS="$OPTARG" ;;
    v) VERBOSE=1 ;;
    h|\?) echo usage; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
torchrun --nnodes ${NODES:-1} --nproc_per_node ${GPUS:-8} main.py ${VERBOSE:+--verbose} "$@"
