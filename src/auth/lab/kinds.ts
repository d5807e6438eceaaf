/** The kinds of launches, with a sentence for developers. */
export const LAUNCH_KINDS = {
  ehr: {
    title: 'EHR launch',
    text: 'A clinician opens the app for a patient, as from the portal. The app gets iss and launch, so it does not ask for a patient.',
  },
  patient: {
    title: 'EHR launch by a patient',
    text: 'A patient or a relative opens the app, as from a patient portal. The app gets their own record.',
  },
  standalone: {
    title: 'Standalone launch',
    text: 'The app starts by itself and gets iss only. The user signs in, and a clinician chooses the patient.',
  },
  backend: {
    title: 'Backend service',
    text: 'There is no user and no browser. The app gets a token for system/ scopes with an assertion that it signs.',
  },
} as const

export type LaunchKind = keyof typeof LAUNCH_KINDS

export function isLaunchKind(name: string): name is LaunchKind {
  return Object.hasOwn(LAUNCH_KINDS, name)
}

/** Whether a launch of this kind has a launch token, which carries a context and the settings of the lab. */
export function hasContext(kind: LaunchKind): boolean {
  return kind === 'ehr' || kind === 'patient'
}
