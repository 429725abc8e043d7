from surefoot.envs.ids import is_code, is_library, short_name


def test_which_ids_are_code():
    assert is_library("./a.so")
    assert is_library("worlds/a.dylib")
    assert not is_library("a.so")
    assert not is_library("surefoot/Signal-v0")
    assert is_code("module:function")
    assert is_code("./a.so")
    assert not is_code("CartPole-v1")
    assert short_name("../worlds/lander.so") == "lander"
    assert short_name("surefoot/Signal-v0") == "surefoot/Signal-v0"
