"""Translations: what there is to translate, and compiling what was. Needs no gettext on the machine."""
