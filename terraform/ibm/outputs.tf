# Written by terraform/generate.py from terraform/modules/ibm, where each variable is checked.

output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = module.cluster.cluster_endpoints
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = module.cluster.master_ip
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.cluster.cluster
}

output "checkpoint_environment" {
  description = "The key pair for the bucket as a file of environment variables, for a file of mode 0600 on the nodes (docs/clouds/ibm.md); empty with checkpoint_credentials = none."
  sensitive   = true
  value       = module.cluster.checkpoint_environment
}
