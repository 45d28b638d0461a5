from evalsite.common.shell import Shell, SystemLink


def test_current_system_of_a_page_inside_one() -> None:
    here = SystemLink("airline", "/s/airline", is_current=True)
    shell = Shell("/", "/sign-in", systems=(SystemLink("retail", "/s/retail"), here))
    assert shell.current_system == here


def test_no_current_system_outside_of_one() -> None:
    shell = Shell("/", "/sign-in", systems=(SystemLink("retail", "/s/retail"),))
    assert shell.current_system is None
