# What the machines may do: nodes read and write the cluster's own prefix of its own bucket. With connection = ssm,
# nodes and monitor also answer Session Manager, which lets an operator in without an open port.

locals {
  assume_from_ec2 = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
  # What an agent needs for sessions. AWS's own AmazonSSMManagedInstanceCore would let it read the account's parameters.
  session = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "Sessions"
      Effect = "Allow"
      Action = [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
      ]
      Resource = "*"
    }]
  })
}

resource "aws_iam_role" "node" {
  count = local.own_role ? 1 : 0

  name_prefix        = "${var.name}-node-"
  assume_role_policy = local.assume_from_ec2
  tags               = local.tags
}

resource "aws_iam_role_policy" "checkpoints" {
  count = local.own_role ? 1 : 0

  name_prefix = "checkpoints-"
  role        = aws_iam_role.node[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "List"
        Effect    = "Allow"
        Action    = "s3:ListBucket"
        Resource  = local.bucket_arn
        Condition = { StringLike = { "s3:prefix" = ["${module.cluster.checkpoint_prefix}/*"] } }
      },
      {
        # This action has no condition key s3:prefix, and is denied under a condition that names one.
        Sid      = "Uploads"
        Effect   = "Allow"
        Action   = "s3:ListBucketMultipartUploads"
        Resource = local.bucket_arn
      },
      {
        Sid      = "Objects"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
        Resource = "${local.bucket_arn}/${module.cluster.checkpoint_prefix}/*"
      },
      {
        Sid      = "Key"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = local.key_arn
      },
    ]
  })
}

resource "aws_iam_role_policy" "session" {
  #checkov:skip=CKV_AWS_355:these actions have no resource to name
  #checkov:skip=CKV_AWS_290:these actions have no resource to name
  for_each = var.connection == "ssm" ? merge({ for role in aws_iam_role.node : "node" => role.id }, { for role in aws_iam_role.monitor : "monitor" => role.id }) : {}

  name_prefix = "session-"
  role        = each.value
  policy      = local.session
}

resource "aws_iam_instance_profile" "node" {
  name_prefix = "${var.name}-node-"
  role        = local.role_name
  tags        = local.tags
}

resource "aws_iam_role" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name_prefix        = "${var.name}-monitor-"
  assume_role_policy = local.assume_from_ec2
  tags               = local.tags
}

resource "aws_iam_instance_profile" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name_prefix = "${var.name}-monitor-"
  role        = aws_iam_role.monitor[0].name
  tags        = local.tags
}
