"""Evaluates ARM templates: from the text of a template to the resources that it asks for. Pure.

`Plan` has the resources in the order of their creation. `Plan.body` evaluates one of them and
`Plan.outputs` the outputs, given the existing resources that they refer to. Every mistake in a
template is an ArmError, and no template can take more than a limited amount of work.
"""
