#!/bin/bash
# commentaire: modèle à entraîner – « 8B »
NAME="modèle-日本語 ✓"
python u.py --name "$NAME" $NAME --é=1 ${#NAME} "${NAME:0:6}" "${NAME^^}" 日本 --wandb "café ☕"
