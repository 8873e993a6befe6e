// A health check by TCP alone: that the host can be connected to, or what it answers to some bytes
// (HealthCheck.TcpHealthCheck).
import type { Socket } from "node:net";
import { readyEventOf } from "../../tls/ready-event.ts";
import { connectSocket } from "../../upstream/connect-socket.ts";
import { type HealthCheckSettings, holdsInOrder, type TcpCheck } from "./health-check-settings.ts";
import { answerTooLong, type CheckResult, type CheckTarget, networkFailure, type Probe, success } from "./probe.ts";

/** A host that has sent so much, and not what it should, has failed; between checks, too. */
const maxReceivedBytes = 64 * 1024;

export class TcpProbe implements Probe {
  readonly #target: CheckTarget;
  readonly #check: TcpCheck;
  readonly #settings: HealthCheckSettings;
  readonly #onResult: (result: CheckResult) => void;
  /** Undefined = none, or one whose end nobody waits for. */
  #socket: Socket | undefined = undefined;
  #isUp = false;
  /** A check is under way: bytes that come otherwise answer nothing. */
  #isAsking = false;
  #received = Buffer.alloc(0);
  #unaskedBytes = 0;

  constructor(
    target: CheckTarget,
    check: TcpCheck,
    settings: HealthCheckSettings,
    onResult: (result: CheckResult) => void,
  ) {
    this.#target = target;
    this.#check = check;
    this.#settings = settings;
    this.#onResult = onResult;
  }

  begin(): void {
    this.#received = Buffer.alloc(0);
    this.#unaskedBytes = 0;
    this.#isAsking = true;
    if (this.#socket === undefined) this.#connect();
    else this.#send();
  }

  giveUp(): void {
    this.close();
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isUp = false;
    this.#isAsking = false;
    socket?.destroy();
  }

  #connect(): void {
    const { endpoint, cluster, dataPath } = this.#target;
    const { alpnProtocols } = this.#settings;
    const tlsOptions = { serverName: undefined, verifiesServerName: false, defaultProtocols: [], alpnProtocols };
    const within = (action: () => void): void => {
      if (this.#socket === socket) dataPath.turn.run(action);
    };
    const onRead = (chunk: Buffer): void => within(() => this.#onRead(chunk));
    const socket = connectSocket(endpoint, cluster, dataPath, onRead, tlsOptions);
    this.#socket = socket;
    socket.on(readyEventOf(socket), () => within(() => this.#onUp()));
    // The close says it.
    socket.on("error", () => undefined);
    socket.on("end", () => socket.destroy());
    socket.on("close", () =>
      within(() => {
        this.close();
        this.#onResult(networkFailure);
      }),
    );
  }

  #onUp(): void {
    this.#isUp = true;
    if (this.#check.receive.length > 0) return this.#send();
    this.close();
    this.#onResult(success);
  }

  #send(): void {
    if (this.#isUp && this.#check.send !== undefined) this.#socket?.write(this.#check.send);
  }

  #onRead(chunk: Buffer): void {
    if (!this.#isAsking) {
      this.#unaskedBytes += chunk.length;
      if (this.#unaskedBytes > maxReceivedBytes) this.#failTooLong();
      return;
    }
    this.#received = Buffer.concat([this.#received, chunk]);
    if (holdsInOrder(this.#received, this.#check.receive)) {
      this.#isAsking = false;
      if (!this.#settings.reusesConnection) this.close();
      this.#onResult(success);
      return;
    }
    if (this.#received.length > maxReceivedBytes) this.#failTooLong();
  }

  #failTooLong(): void {
    this.close();
    this.#onResult(answerTooLong);
  }
}
