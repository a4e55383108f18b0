"""ARM templates: from the text of a template to the resources that it asks for. Pure.

`plan` says which resources there are and in which order; `Plan.body` what each of them says, and
`Plan.outputs` what the deployment answers, both given what the resources that they refer to are
like. Whatever is wrong with a template is an ArmError, and no template can take more than a
bounded amount of work.
"""
