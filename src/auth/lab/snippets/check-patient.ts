import { quote } from './quote.ts'

/** What the code says to a developer who opened the app without a launch, and without `launch/patient`. */
export const NO_PATIENT =
  'The app was opened without a launch, so it has no patient. Launch it from the portal or the lab, or add launch/patient to its scopes.'

/** A statement that explains a missing patient, if a request needs one. */
export function checkPatient(patient: string, requests: readonly string[], indent: number): string {
  if (!needsPatient(requests)) return ''
  return `\n${' '.repeat(indent)}if (!${patient}) throw new Error(${quote(NO_PATIENT)})`
}

export function needsPatient(requests: readonly string[]): boolean {
  return requests.some(request => request.includes('{patient}'))
}
