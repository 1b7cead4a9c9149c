#!/bin/bash
TP=2; PP=4; VPP=; CP=1; SP=true; AC=sel
if [ $PP -gt 1 ]; then
    if [ -z "$VPP" ]; then
        vp=""
    else
        vp=" --num-layers-per-virtual-pipeline-stage $VPP"
    fi
elif [ $PP -eq 1 ]; then
    vp="none"
fi
if [ $SP = true ] && [ $TP -gt 1 ]; then sp=" --sequence-parallel"; elif [ $SP = false ]; then sp=" "; fi
if [ $AC = full ]; then
    ac="--recompute-granularity full"
elif [[ $AC == sel* ]]; then
    ac=" \
        --recompute-granularity selective"
elif [ $AC = none ]; then ac=""; fi
case "$TP-$PP" in
    1-*) par=a;;
    2-[0-9]) par=b;;&
    *-4) par+=c;&
    never) par+=d;;
    *) par=e;;
esac
torchrun train.py $vp $sp $ac --par $par ${CP:+--cp $CP}
