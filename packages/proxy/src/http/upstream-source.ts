// From where hosts are called on behalf of a connection: its client's address in the place of the machine's own.

export interface UpstreamSource {
  readonly ip: string;
  /** 0 = any. */
  readonly port: number;
  /** On what is sent, for the kernel's rules; 0 = none. */
  readonly mark: number;
  /** The same for equal ones. */
  readonly key: string;
}
