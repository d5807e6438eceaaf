import type { LightMyRequestResponse } from 'fastify'
import { computeTotpCode } from '../users/factors/totp.ts'
import type { TestAuthServer } from './test-auth-server.ts'
import type { TestBrowser } from './test-browser.ts'

const STEP_MS = 30_000

/** The phone of a user: an authenticator app that knows the key of a page. */
export class TestPhone {
  readonly #auth: TestAuthServer
  readonly #secret: string

  constructor(auth: TestAuthServer, page: string) {
    this.#auth = auth
    const [, key = ''] = /url--block">([A-Z2-7 ]+)</.exec(page) ?? []
    this.#secret = key.replaceAll(' ', '')
  }

  /** The code that it shows now, or so many steps of 30 seconds later. */
  getCode(later = 0): string {
    return computeTotpCode(this.#secret, Math.floor(this.#auth.time.now / STEP_MS) + later)
  }

  /** Waits for the next code. */
  takeNextCode(): string {
    this.#auth.time.now += STEP_MS
    return this.getCode()
  }
}

/** The hidden field that belongs to the key of a page. */
export function readEnrolment(page: string): string {
  return /name="enrolment" value="([^"]+)"/.exec(page)?.[1] ?? ''
}

/** Adds an authenticator app to the user who is signed in. */
export async function addPhone(
  auth: TestAuthServer,
  browser: TestBrowser,
): Promise<{ readonly phone: TestPhone; readonly codes: readonly string[]; readonly page: string }> {
  const { body } = await browser.get('/account/factors/add')
  const phone = new TestPhone(auth, body)
  const form = { enrolment: readEnrolment(body), code: phone.getCode() }
  const added = await browser.post('/account/factors/add', form)
  return { phone, codes: readCodes(added), page: added.body }
}

/** The recovery codes of a page. */
export function readCodes({ body }: LightMyRequestResponse): readonly string[] {
  return /<pre class="codes">([^<]*)</.exec(body)?.[1]?.split('\n') ?? []
}
