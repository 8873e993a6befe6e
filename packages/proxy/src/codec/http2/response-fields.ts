// A response's field section as the head that everything above the codec works with (RFC 9113 §8.3.2).
import { type FieldKind, fieldKinds } from "./field-syntax.ts";
import { SectionFields } from "./request-fields.ts";

export class ResponseFields extends SectionFields {
  /** 0 where none has come. */
  status = 0;

  override begin(): void {
    super.begin();
    this.status = 0;
  }

  protected override takePseudo(kind: FieldKind, value: string): void {
    if (kind !== fieldKinds.status || this.status !== 0) this.fail("a pseudo-header but :status");
    else this.status = Number(value);
  }

  /** Nothing in the section breaks a rule. 101 is no answer here (§8.6). */
  get isSound(): boolean {
    return this.fault === "" && !this.isTooLarge && this.status !== 0 && this.status !== 101;
  }
}
