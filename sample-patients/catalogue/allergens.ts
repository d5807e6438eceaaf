/** What people are allergic to: substances by SNOMED CT, medicines by RxNorm ingredient. */
export interface AllergenEntry {
  readonly system: 'snomed' | 'rxnorm'
  readonly code: string
  readonly display: string
  readonly category: 'food' | 'medication' | 'environment'
  readonly reactions: readonly [ReactionKey, ...ReactionKey[]]
  readonly criticality: 'low' | 'high'
  readonly share: number
}

export const reactions = {
  hives: ['126485001', 'Urticaria'],
  rash: ['271807003', 'Eruption of skin'],
  anaphylaxis: ['39579001', 'Anaphylaxis'],
  nausea: ['422587007', 'Nausea'],
  breathless: ['267036007', 'Dyspnea'],
  cough: ['49727002', 'Cough'],
  itch: ['418363000', 'Itching of skin'],
} as const satisfies Record<string, readonly [code: string, display: string]>

type ReactionKey = keyof typeof reactions

export const allergens = {
  penicillin: drug('7980', 'penicillin G', ['hives', 'rash', 'anaphylaxis'], 'high', 0.1),
  sulfamethoxazole: drug('10180', 'sulfamethoxazole', ['rash'], 'low', 0.05),
  aspirin: drug('1191', 'aspirin', ['breathless', 'hives'], 'high', 0.03),
  codeine: drug('2670', 'codeine', ['nausea', 'itch'], 'low', 0.04),
  peanut: substance('762952008', 'Peanut', 'food', ['anaphylaxis', 'hives'], 'high', 0.04),
  egg: substance('102263004', 'Eggs (edible)', 'food', ['hives', 'nausea'], 'low', 0.02),
  milk: substance('3718001', "Cow's milk", 'food', ['rash', 'nausea'], 'low', 0.03),
  shellfish: substance('735029006', 'Shellfish', 'food', ['hives', 'anaphylaxis'], 'high', 0.03),
  grass: substance('256277009', 'Grass pollen', 'environment', ['cough', 'itch'], 'low', 0.08),
  dustMite: substance('260147004', 'House dust mite', 'environment', ['cough', 'breathless'], 'low', 0.06),
  dander: substance('264287008', 'Animal dander', 'environment', ['itch', 'cough'], 'low', 0.05),
  beeVenom: substance('288328004', 'Bee venom', 'environment', ['anaphylaxis'], 'high', 0.02),
  latex: substance('111088007', 'Latex', 'environment', ['rash', 'itch'], 'low', 0.03),
} as const satisfies Record<string, AllergenEntry>

/** Said outright, where nothing is known: an empty list would not mean the same. */
export const noKnownAllergy = ['716186003', 'No known allergy'] as const

function drug(
  code: string,
  display: string,
  seen: AllergenEntry['reactions'],
  criticality: 'low' | 'high',
  share: number,
): AllergenEntry {
  return { system: 'rxnorm', code, display, category: 'medication', reactions: seen, criticality, share }
}

function substance(
  code: string,
  display: string,
  category: 'food' | 'environment',
  seen: AllergenEntry['reactions'],
  criticality: 'low' | 'high',
  share: number,
): AllergenEntry {
  return { system: 'snomed', code, display, category, reactions: seen, criticality, share }
}
