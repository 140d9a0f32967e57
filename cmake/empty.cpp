// A target of nothing but precompiled headers needs a source.
