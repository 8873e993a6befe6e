// A reader that has seen enough (`tulle logs | head`) closes the pipe: that is no failure of ours.

export function endWithReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}
