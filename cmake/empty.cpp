// A target of precompiled headers alone needs a source.
