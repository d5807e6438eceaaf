import { Failing } from '../../../core/index.ts'
import { PROVIDER_SIGN_IN } from '../../words/sign-in.ts'

export type SignInReason = keyof typeof PROVIDER_SIGN_IN

/** A refused sign-in. `detail` is for administrators: it names a check and never a value of a claim. */
export class SignInRefusal extends Failing {
  readonly reason: SignInReason
  readonly detail: string | undefined
  constructor(reason: SignInReason, detail?: string) {
    super()
    this.reason = reason
    this.detail = detail
  }

  get status(): (typeof PROVIDER_SIGN_IN)[SignInReason]['status'] {
    return PROVIDER_SIGN_IN[this.reason].status
  }

  get title(): string {
    return PROVIDER_SIGN_IN[this.reason].sentence
  }

  /** For the page. */
  get paragraphs(): readonly string[] {
    const { cause, remedy } = PROVIDER_SIGN_IN[this.reason]
    return [`${cause} No record was opened.`, remedy]
  }

  /** For the audit trail and for `login explain`. */
  get text(): string {
    return this.detail === undefined ? this.title : `${this.title}: ${this.detail}`
  }
}
