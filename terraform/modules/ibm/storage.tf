# Where checkpoints outlive the nodes. The machines reach the bucket as a trusted profile that is linked to them, so
# that no key is made and none gets into the state.

resource "ibm_resource_instance" "storage" {
  name              = "${var.name}-storage"
  service           = "cloud-object-storage"
  plan              = "standard"
  location          = "global"
  resource_group_id = local.group
  tags              = local.tags
}

resource "ibm_cos_bucket" "checkpoints" {
  bucket_name          = "${var.name}-checkpoints-${substr(sha1(ibm_resource_instance.storage.id), 0, 12)}"
  resource_instance_id = ibm_resource_instance.storage.id
  region_location      = var.region
  storage_class        = "smart"
  endpoint_type        = "public"
  key_protect          = var.encryption_key_crn
  force_delete         = var.destroy_checkpoints

  # IBM takes either versions or expiry rules on a bucket; versions are what saves a checkpoint.
  object_versioning {
    enable = true
  }
}

resource "ibm_iam_trusted_profile" "node" {
  name        = "${var.name}-node"
  description = "Nodes of the cluster ${var.name}"
}

resource "ibm_iam_trusted_profile_policy" "checkpoints" {
  profile_id  = ibm_iam_trusted_profile.node.id
  roles       = ["Writer"]
  description = "Checkpoints of the cluster ${var.name}"

  resources {
    service              = "cloud-object-storage"
    resource_instance_id = ibm_resource_instance.storage.guid
    resource_type        = "bucket"
    resource             = ibm_cos_bucket.checkpoints.bucket_name
  }
}

resource "ibm_cos_bucket" "flow" {
  count = var.flow_logs ? 1 : 0

  bucket_name          = "${var.name}-flow-${substr(sha1(ibm_resource_instance.storage.id), 0, 12)}"
  resource_instance_id = ibm_resource_instance.storage.id
  region_location      = var.region
  storage_class        = "smart"
  key_protect          = var.encryption_key_crn
  force_delete         = true

  expire_rule {
    rule_id = "forget"
    enable  = true
    days    = 365
  }
}

resource "ibm_iam_authorization_policy" "flow" {
  count = var.flow_logs ? 1 : 0

  source_service_name         = "is"
  source_resource_type        = "flow-log-collector"
  target_service_name         = "cloud-object-storage"
  target_resource_instance_id = ibm_resource_instance.storage.guid
  roles                       = ["Writer"]
}

resource "ibm_is_flow_log" "cluster" {
  count = var.flow_logs ? 1 : 0

  name           = var.name
  target         = ibm_is_vpc.cluster.id
  active         = true
  storage_bucket = ibm_cos_bucket.flow[0].bucket_name
  resource_group = local.group
  tags           = local.tags

  depends_on = [ibm_iam_authorization_policy.flow]
}
