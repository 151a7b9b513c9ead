# Where checkpoints outlive the nodes. What runs on the machines reaches the bucket as a trusted profile; the trainer,
# an S3 client, by a key pair of a service id that may do no more (checkpoint_credentials).

locals {
  hmac = var.checkpoint_credentials == "hmac"
  # Write, read and list objects, and delete what is pruned: not the bucket, its settings, or a version that was kept.
  checkpoint_roles = ["Object Writer", "Content Reader", ibm_iam_custom_role.prune.display_name]
}

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

  # Versions are what saves a checkpoint that was deleted by mistake. They end, as do uploads that nobody finished.
  object_versioning {
    enable = true
  }

  noncurrent_version_expiration {
    rule_id         = "forget-versions"
    enable          = true
    noncurrent_days = var.noncurrent_days
  }

  abort_incomplete_multipart_upload_days {
    rule_id               = "forget-uploads"
    enable                = true
    days_after_initiation = 7
  }
}

resource "ibm_iam_trusted_profile" "node" {
  name        = "${var.name}-node"
  description = "Nodes of the cluster ${var.name}"
}

# Object Writer does not delete, and Writer would delete the bucket.
resource "ibm_iam_custom_role" "prune" {
  name         = "Prune${substr(sha1(var.name), 0, 12)}"
  display_name = "${var.name} checkpoint pruning"
  description  = "Deletes checkpoints that the cluster ${var.name} no longer keeps"
  service      = "cloud-object-storage"
  actions = [
    "cloud-object-storage.bucket.get_uploads",
    "cloud-object-storage.object.delete",
    "cloud-object-storage.object.delete_upload",
    "cloud-object-storage.object.post_multi_delete",
  ]
}

resource "ibm_iam_service_id" "checkpoints" {
  count = local.hmac ? 1 : 0

  name        = "${var.name}-checkpoints"
  description = "The trainer on the cluster ${var.name}"
}

resource "ibm_iam_service_policy" "checkpoints" {
  count = local.hmac ? 1 : 0

  iam_service_id = ibm_iam_service_id.checkpoints[0].id
  roles          = local.checkpoint_roles
  description    = "Checkpoints of the cluster ${var.name}"

  resources {
    service              = "cloud-object-storage"
    resource_instance_id = ibm_resource_instance.storage.guid
    resource_type        = "bucket"
    resource             = ibm_cos_bucket.checkpoints.bucket_name
  }
}

# No role: what it may do is what the service id may do.
resource "ibm_resource_key" "checkpoints" {
  count = local.hmac ? 1 : 0

  name                 = "${var.name}-checkpoints"
  resource_instance_id = ibm_resource_instance.storage.id
  role                 = "NONE"
  parameters           = { HMAC = "true", serviceid_crn = ibm_iam_service_id.checkpoints[0].crn }
}

resource "ibm_iam_trusted_profile_policy" "checkpoints" {
  profile_id  = ibm_iam_trusted_profile.node.id
  roles       = local.checkpoint_roles
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
  force_delete         = false

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
  target         = local.own_vpc ? local.vpc : local.subnet
  active         = true
  storage_bucket = ibm_cos_bucket.flow[0].bucket_name
  resource_group = local.group
  tags           = local.tags

  depends_on = [ibm_iam_authorization_policy.flow]
}
