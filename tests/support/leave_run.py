#!/usr/bin/env python3
"""leave_run.py RUN TO: stands in for the recorder in a program. Leaves a copy of a run that says of which recording it is."""
import os
import shutil
import sqlite3
import sys

_, run, to = sys.argv
shutil.copyfile(run, to)
file = sqlite3.connect(to)
mark = os.path.basename(os.path.dirname(os.environ["WARPSIGHT_RECORD_FOLLOWER"]))
file.execute("INSERT OR REPLACE INTO meta VALUES('recording', ?)", (mark,))
file.commit()
file.close()
