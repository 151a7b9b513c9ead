"""The dashboards of the role grafana, made from one catalogue."""
