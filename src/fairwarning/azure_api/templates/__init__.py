"""Evaluates ARM templates. The results are the resources to create and the outputs. Pure.

`Plan` has the resources in the order of their creation. `Plan.body` evaluates one resource, and
`Plan.outputs` evaluates the outputs. Both take the existing resources that the template refers to.
Every mistake in a template raises ArmError. The work that a template can cause is limited.
"""
