/** How a user authenticated, for the claim `amr` (RFC 8176). */
export const METHODS = {
  password: ['pwd'],
  /** A code of an authenticator app, or a recovery code, after the password. */
  code: ['otp', 'mfa'],
  /** Possession of a key that verifies its user by itself. Nothing proves whether hardware protects the key. */
  passkey: ['pop', 'user', 'mfa'],
} as const

/** The authentication context classes of this server, the strongest first. */
export const ACR_VALUES = {
  /** Phishing-resistant (OpenID Connect Extended Authentication Profile ACR Values 1.0). */
  passkey: 'phr',
  /** The REFEDS multi-factor authentication profile. */
  mfa: 'https://refeds.org/profile/mfa',
} as const

interface Authentication {
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
  /** The identity provider that authenticated the user. An OpenID provider says what its classes are. */
  readonly issuer?: string | undefined
}

/** Whether a login meets a class. A passkey is more than a second factor. */
export function meetsAcr({ acr, amr, issuer }: Authentication, value: string): boolean {
  // After the password of a directory, the second factor is one of this server.
  const isOwn = issuer === undefined || issuer.startsWith('ldap:')
  return acr === value || (isOwn && listAcrValues(amr ?? []).includes(value))
}

export function isOwnAcr(value: string): boolean {
  return Object.values(ACR_VALUES).some(own => own === value)
}

/** The class for the id_token: the first requested one that the login meets, or else the strongest. */
export function chooseAcr(login: Authentication, wanted: readonly string[] = []): string | undefined {
  return wanted.find(value => meetsAcr(login, value)) ?? login.acr
}

/** The classes that an authentication meets, the strongest first. A password alone meets none. */
export function listAcrValues(methods: readonly string[]): readonly string[] {
  if (methods.includes('pop')) return [ACR_VALUES.passkey, ACR_VALUES.mfa]
  return methods.includes('mfa') ? [ACR_VALUES.mfa] : []
}
