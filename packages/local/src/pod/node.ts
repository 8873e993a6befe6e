// This machine, as pods see their node.
import os from "node:os";

/** It is also how the store tells a pod that runs from one that was only written down. */
export const nodeName = os.hostname().toLowerCase();

export const hostAddress = "127.0.0.1";
