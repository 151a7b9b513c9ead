resource "aws_budgets_budget" "cluster" {
  count = var.monthly_budget_usd == null ? 0 : 1

  name_prefix  = "gaudi3-${var.name}-"
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"
  tags         = local.tags

  cost_filter {
    # user:KEY$VALUE. Two dollar signs before a brace would be an escape, and var.name would stand there as it is.
    name   = "TagKeyValue"
    values = ["user:Cluster${"$"}${var.name}"]
  }

  dynamic "notification" {
    for_each = [80, 100]

    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value
      threshold_type             = "PERCENTAGE"
      notification_type          = "ACTUAL"
      subscriber_email_addresses = var.budget_emails
    }
  }
}

# Actions of a budget stop machines through Systems Manager's automation, in the name of this role.
resource "aws_iam_role" "budget" {
  count = var.budget_stops_nodes ? 1 : 0

  name_prefix = "${var.name}-budget-"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "budgets.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "budget" {
  count = var.budget_stops_nodes ? 1 : 0

  role       = aws_iam_role.budget[0].name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AWSBudgetsActions_RolePolicyForResourceAdministrationWithSSM"
}

resource "aws_budgets_budget_action" "stop" {
  count = var.budget_stops_nodes ? 1 : 0

  budget_name        = aws_budgets_budget.cluster[0].name
  action_type        = "RUN_SSM_DOCUMENTS"
  approval_model     = "AUTOMATIC"
  notification_type  = "ACTUAL"
  execution_role_arn = aws_iam_role.budget[0].arn

  action_threshold {
    action_threshold_type  = "PERCENTAGE"
    action_threshold_value = 100
  }

  definition {
    ssm_action_definition {
      action_sub_type = "STOP_EC2_INSTANCES"
      region          = var.region
      instance_ids    = concat([for name in module.cluster.node_names : aws_instance.node[name].id], aws_instance.monitor[*].id)
    }
  }

  dynamic "subscriber" {
    for_each = var.budget_emails

    content {
      address           = subscriber.value
      subscription_type = "EMAIL"
    }
  }

  depends_on = [aws_iam_role_policy_attachment.budget]
}
