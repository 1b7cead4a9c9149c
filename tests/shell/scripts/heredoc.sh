#!/bin/bash
CONFIG=run.json
cat > $CONFIG <<EOF
{"train_batch_size": $((8*4)), "name": "$CONFIG"}
EOF
cat <<'EOF' > plain.txt
no $expansion `here`
EOF
if true; then
	tee other.json <<-EOT >/dev/null
	{"x": 1}
	EOT
fi
VAR=$(cat <<- END
	tabbed \$A
	END
)
python h.py --config $CONFIG "$VAR"
