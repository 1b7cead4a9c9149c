#!/bin/bash
source ./common.inc
. model.inc 8b "extra arg"
torchrun $COMMON train.py ${MODEL[@]} --first $1
bash child.inc "a b" c
