/** A medicine as it is prescribed: RxNorm code and name, our words for it (name, strength, form), and how it is taken. */
export interface MedicineEntry {
  readonly rxnorm: string
  readonly display: string
  readonly text: string
  readonly dosage: Dosage
  readonly kind?: 'separate'
}

export interface Dosage {
  readonly text: string
  readonly dose: readonly [value: number, unit: string]
  /** How often in a day or a week; none when it is taken as needed without a rhythm. */
  readonly times?: readonly [frequency: number, unit: 'd' | 'wk']
  readonly route: Route
  readonly asNeeded?: true
}

export const routes = {
  oral: ['26643006', 'Oral route'],
  inhaled: ['447694001', 'Respiratory tract route'],
  nasal: ['46713006', 'Nasal route'],
  skin: ['6064005', 'Topical route'],
  subcutaneous: ['34206005', 'Subcutaneous route'],
} as const satisfies Record<string, readonly [code: string, display: string]>

type Route = keyof typeof routes

const perDay: Readonly<Record<number, string>> = {
  1: 'once a day',
  2: 'twice a day',
  3: 'three times a day',
  4: 'four times a day',
}

export function tablets(
  rxnorm: string,
  display: string,
  text: string,
  each: number,
  times: number,
  when?: string,
) {
  return oral(
    rxnorm,
    display,
    text,
    each === 1 ? '1 tablet' : `${each} tablets`,
    [each, 'tablet'],
    times,
    when,
  )
}

export function capsules(
  rxnorm: string,
  display: string,
  text: string,
  each: number,
  times: number,
  when?: string,
) {
  return oral(
    rxnorm,
    display,
    text,
    each === 1 ? '1 capsule' : `${each} capsules`,
    [each, 'capsule'],
    times,
    when,
  )
}

function oral(
  rxnorm: string,
  display: string,
  text: string,
  amount: string,
  dose: Dosage['dose'],
  times: number,
  when?: string,
): MedicineEntry {
  const words = `${amount}, ${perDay[times] ?? `${times} times a day`}${when === undefined ? '' : ` ${when}`}`
  return { rxnorm, display, text, dosage: { text: words, dose, times: [times, 'd'], route: 'oral' } }
}

export function weekly(
  rxnorm: string,
  display: string,
  text: string,
  each: number,
  words: string,
): MedicineEntry {
  return {
    rxnorm,
    display,
    text,
    dosage: { text: words, dose: [each, each === 1 ? 'tablet' : 'tablets'], times: [1, 'wk'], route: 'oral' },
  }
}
