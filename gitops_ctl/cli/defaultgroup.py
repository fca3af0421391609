"""A group of commands in which one needs no name: its arguments may follow the group at once."""

import click


class DefaultGroup(click.Group):
    """What is no name of a command belongs to the command `default`; a subclass or instance names it."""

    default = ""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self.commands[self.default]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args[0] in self.commands else [self.default, *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help"}
        is_short = not args or (args[0][:1] == "-" and not own & set(args))
        return super().parse_args(ctx, [self.default, *args] if is_short else args)
