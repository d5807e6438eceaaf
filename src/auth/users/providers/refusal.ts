import { Failing } from '../../../core/index.ts'

interface RefusalText {
  readonly status: 400 | 403 | 502 | 503
  readonly title: string
  readonly text: string
  /** What the user can do. */
  readonly advice: string
}

const ADVICE = {
  again: 'Sign in again.',
  later: 'Try again in a few minutes.',
  administrator: 'Ask your administrator, and give the reference below.',
} as const

/** Every way in which a sign-in with a provider ends without a login. */
const TEXTS = {
  expired: {
    status: 400,
    title: 'This sign-in has ended',
    text: 'It was already completed, it took longer than 10 minutes, or it was started in another browser.',
    advice: ADVICE.again,
  },
  unreachable: {
    status: 503,
    title: 'The sign-in provider is not available',
    text: 'Sallyport could not reach the server that checks your account.',
    advice: ADVICE.later,
  },
  busy: {
    status: 503,
    title: 'Too many sign-ins are in progress',
    text: 'More people than expected are signing in from your network.',
    advice: ADVICE.later,
  },
  denied: {
    status: 403,
    title: 'You were not signed in',
    text: 'The sign-in was cancelled, or the sign-in provider refused it.',
    advice: ADVICE.again,
  },
  'bad-response': {
    status: 502,
    title: 'The sign-in could not be verified',
    text: 'The response of the sign-in provider did not pass a security check.',
    advice: `${ADVICE.again} If this happens again, ask your administrator, and give the reference below.`,
  },
  'bad-callback': {
    status: 400,
    title: 'The sign-in could not be verified',
    text: 'A part of the URL of this page is missing, appears twice, or comes from another sign-in.',
    advice: ADVICE.again,
  },
  'weak-authentication': {
    status: 403,
    title: 'A stronger sign-in is required',
    text: 'A stronger way of signing in is required, such as a second factor, or a more recent sign-in.',
    advice: ADVICE.again,
  },
  'not-allowed': {
    status: 403,
    title: 'Your account may not use Sallyport',
    text: 'You are signed in at your organization, but your account is not in a group that may use Sallyport.',
    advice: ADVICE.administrator,
  },
  'too-many-groups': {
    status: 403,
    title: 'Your groups could not be read',
    text: 'Your account is in so many groups that the sign-in provider does not list them.',
    advice: ADVICE.administrator,
  },
  'unknown-subject': {
    status: 403,
    title: 'Your account is not known here',
    text: 'You are signed in at your organization, but your account is not linked to a clinician.',
    advice: ADVICE.administrator,
  },
  disabled: {
    status: 403,
    title: 'Your account is disabled',
    text: 'An administrator disabled your clinician account.',
    advice: ADVICE.administrator,
  },
  'username-taken': {
    status: 403,
    title: 'Your username is already in use here',
    text: 'Another clinician has the username of your account. Accounts are never merged by name.',
    advice: ADVICE.administrator,
  },
  'bad-claims': {
    status: 403,
    title: 'Your account is incomplete',
    text: 'The sign-in provider did not send the details that identify you in the health record.',
    advice: ADVICE.administrator,
  },
  'no-practitioner': {
    status: 403,
    title: 'You are not in the health record',
    text: 'The FHIR server has no practitioner that matches your account.',
    advice: ADVICE.administrator,
  },
  'several-practitioners': {
    status: 403,
    title: 'Your account matches several practitioners',
    text: 'The FHIR server has more than one practitioner that matches your account.',
    advice: ADVICE.administrator,
  },
  'no-patient': {
    status: 403,
    title: 'You are not in the health record',
    text: 'The FHIR server has no patient that matches your account.',
    advice: ADVICE.administrator,
  },
  'several-patients': {
    status: 403,
    title: 'Your account matches several patients',
    text: 'The FHIR server has more than one patient that matches your account.',
    advice: ADVICE.administrator,
  },
  'other-users': {
    status: 403,
    title: 'This sign-in is for other users',
    text: 'Patients and clinicians sign in with different providers.',
    advice: 'Choose another way to sign in.',
  },
  'fhir-unavailable': {
    status: 503,
    title: 'The health record is not available',
    text: 'Sallyport could not check your account, because the FHIR server did not respond.',
    advice: ADVICE.later,
  },
} as const satisfies Readonly<Record<string, RefusalText>>

export type SignInRefusalKind = keyof typeof TEXTS

/** A refused sign-in. `detail` is for administrators: it names a check and never a value of a claim. */
export class SignInRefusal extends Failing {
  readonly kind: SignInRefusalKind
  readonly detail: string | undefined
  constructor(kind: SignInRefusalKind, detail?: string) {
    super()
    this.kind = kind
    this.detail = detail
  }

  get status(): RefusalText['status'] {
    return TEXTS[this.kind].status
  }

  get title(): string {
    return TEXTS[this.kind].title
  }

  /** For the page. */
  get paragraphs(): readonly string[] {
    const { text, advice } = TEXTS[this.kind]
    return [`${text} No record was opened.`, advice]
  }

  /** For the audit trail and for `login explain`. */
  get reason(): string {
    return this.detail === undefined ? this.title : `${this.title}: ${this.detail}`
  }
}
