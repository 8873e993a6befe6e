// How long a test of `npm run test:soak` loads what it looks at: SOAK_MINUTES in the environment, or half an hour.

const defaultMinutes = 30;

/** @throws where SOAK_MINUTES is no positive number */
export function soakMinutes(): number {
  const minutes = Number(process.env["SOAK_MINUTES"] ?? defaultMinutes);
  if (!(minutes > 0)) throw new Error(`SOAK_MINUTES is "${process.env["SOAK_MINUTES"]}"; expected minutes, such as 10`);
  return minutes;
}
