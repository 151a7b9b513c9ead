# What may be yours already: a subnet, a bucket, a key, a role. Where one is given, nothing in its place is made, changed
# or destroyed here, and what it lets through is yours to decide.

locals {
  own_network = var.subnet_id == ""
  own_bucket  = var.existing_bucket == ""
  own_key     = var.kms_key_arn == ""
  own_role    = var.node_role_name == ""
  gateway     = var.internet && local.own_network

  vpc_id      = local.own_network ? one(aws_vpc.cluster[*].id) : one(data.aws_subnet.existing[*].vpc_id)
  subnet_id   = local.own_network ? one(aws_subnet.nodes[*].id) : var.subnet_id
  subnet_zone = local.own_network ? one(aws_subnet.nodes[*].availability_zone) : one(data.aws_subnet.existing[*].availability_zone)
  s3_prefixes = local.own_network ? one(aws_vpc_endpoint.s3[*].prefix_list_id) : one(data.aws_prefix_list.s3[*].id)

  bucket     = local.own_bucket ? one(aws_s3_bucket.checkpoints[*].id) : var.existing_bucket
  bucket_arn = local.own_bucket ? one(aws_s3_bucket.checkpoints[*].arn) : "arn:${data.aws_partition.current.partition}:s3:::${var.existing_bucket}"
  key_arn    = local.own_key ? one(aws_kms_key.cluster[*].arn) : var.kms_key_arn
  role_name  = local.own_role ? one(aws_iam_role.node[*].name) : var.node_role_name
}

# None of it is looked up while everything is destroyed, so that what is gone cannot stop that.
data "aws_subnet" "existing" {
  count = local.own_network || var.teardown ? 0 : 1

  id = var.subnet_id

  lifecycle {
    postcondition {
      condition     = contains(local.zones, self.availability_zone)
      error_message = "subnet_id is '${var.subnet_id}' in zone ${self.availability_zone}, which does not offer ${var.instance_type}: give a subnet in ${join(" or ", local.zones)}."
    }
  }
}

data "aws_prefix_list" "s3" {
  count = local.own_network || var.teardown ? 0 : 1

  name = "com.amazonaws.${var.region}.s3"
}

# In another subnet there is another machine, and nothing of the old one can stay.
resource "terraform_data" "subnet" {
  input = local.subnet_id
}
