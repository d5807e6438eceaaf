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

export const medicines = {
  lisinopril: tablets('314076', 'lisinopril 10 MG Oral Tablet', 'Lisinopril 10 mg tablet', 1, 1),
  losartan: tablets('979492', 'losartan potassium 50 MG Oral Tablet', 'Losartan 50 mg tablet', 1, 1),
  amlodipine: tablets('197361', 'amlodipine 5 MG Oral Tablet', 'Amlodipine 5 mg tablet', 1, 1),
  ramipril: capsules('261962', 'ramipril 10 MG Oral Capsule', 'Ramipril 10 mg capsule', 1, 1),
  hydrochlorothiazide: tablets(
    '310798',
    'hydrochlorothiazide 25 MG Oral Tablet',
    'Hydrochlorothiazide 25 mg tablet',
    1,
    1,
    'in the morning',
  ),
  bisoprolol: tablets('854905', 'bisoprolol fumarate 5 MG Oral Tablet', 'Bisoprolol 5 mg tablet', 1, 1),
  metoprolol: tablets(
    '866436',
    '24 HR metoprolol succinate 50 MG Extended Release Oral Tablet',
    'Metoprolol succinate 50 mg modified-release tablet',
    1,
    1,
  ),
  furosemide: tablets(
    '313988',
    'furosemide 40 MG Oral Tablet',
    'Furosemide 40 mg tablet',
    1,
    1,
    'in the morning',
  ),
  spironolactone: tablets('313096', 'spironolactone 25 MG Oral Tablet', 'Spironolactone 25 mg tablet', 1, 1),
  apixaban: tablets('1364445', 'apixaban 5 MG Oral Tablet', 'Apixaban 5 mg tablet', 1, 2),
  warfarin: tablets(
    '855332',
    'warfarin sodium 5 MG Oral Tablet',
    'Warfarin 5 mg tablet',
    1,
    1,
    'in the evening, as the INR requires',
  ),
  aspirin: tablets('243670', 'aspirin 81 MG Oral Tablet', 'Aspirin 81 mg tablet', 1, 1),
  clopidogrel: tablets('309362', 'clopidogrel 75 MG Oral Tablet', 'Clopidogrel 75 mg tablet', 1, 1),
  atorvastatin: tablets(
    '617310',
    'atorvastatin 20 MG Oral Tablet',
    'Atorvastatin 20 mg tablet',
    1,
    1,
    'at night',
  ),
  atorvastatin40: tablets(
    '617311',
    'atorvastatin 40 MG Oral Tablet',
    'Atorvastatin 40 mg tablet',
    1,
    1,
    'at night',
  ),
  simvastatin: tablets(
    '312961',
    'simvastatin 20 MG Oral Tablet',
    'Simvastatin 20 mg tablet',
    1,
    1,
    'at night',
  ),
  metformin: tablets(
    '861007',
    'metformin hydrochloride 500 MG Oral Tablet',
    'Metformin 500 mg tablet',
    1,
    2,
    'with meals',
  ),
  metforminModified: tablets(
    '860975',
    '24 HR metformin hydrochloride 500 MG Extended Release Oral Tablet',
    'Metformin 500 mg modified-release tablet',
    2,
    1,
    'with the evening meal',
  ),
  insulinGlargine: {
    rxnorm: '311041',
    display: 'insulin glargine 100 UNT/ML Injectable Solution',
    text: 'Insulin glargine 100 units/mL solution for injection',
    dosage: {
      text: '16 units under the skin, once a day at bedtime',
      dose: [16, 'units'],
      times: [1, 'd'],
      route: 'subcutaneous',
    },
    kind: 'separate',
  },
  insulinLispro: {
    rxnorm: '242120',
    display: 'insulin lispro 100 UNT/ML Injectable Solution',
    text: 'Insulin lispro 100 units/mL solution for injection',
    dosage: {
      text: '4 units under the skin, three times a day with meals',
      dose: [4, 'units'],
      times: [3, 'd'],
      route: 'subcutaneous',
    },
    kind: 'separate',
  },
  levothyroxine: tablets(
    '966222',
    'levothyroxine sodium 0.075 MG Oral Tablet',
    'Levothyroxine 75 microgram tablet',
    1,
    1,
    'in the morning, before food',
  ),
  albuterol: {
    rxnorm: '745679',
    display: '200 ACTUAT albuterol 0.09 MG/ACTUAT Metered Dose Inhaler',
    text: 'Albuterol 90 microgram/dose inhaler',
    dosage: { text: '2 puffs when needed for wheeze', dose: [2, 'puffs'], route: 'inhaled', asNeeded: true },
  },
  fluticasoneInhaled: {
    rxnorm: '895994',
    display: '120 ACTUAT fluticasone propionate 0.044 MG/ACTUAT Metered Dose Inhaler',
    text: 'Fluticasone 44 microgram/dose inhaler',
    dosage: { text: '2 puffs, twice a day', dose: [2, 'puffs'], times: [2, 'd'], route: 'inhaled' },
  },
  fluticasoneSalmeterol: {
    rxnorm: '896209',
    display: '60 ACTUAT fluticasone propionate 0.25 MG/ACTUAT / salmeterol 0.05 MG/ACTUAT Dry Powder Inhaler',
    text: 'Fluticasone 250 microgram and salmeterol 50 microgram/dose dry powder inhaler',
    dosage: { text: '1 dose, twice a day', dose: [1, 'dose'], times: [2, 'd'], route: 'inhaled' },
  },
  fluticasoneNasal: {
    rxnorm: '1797907',
    display: 'fluticasone propionate 0.05 MG/ACTUAT Metered Dose Nasal Spray',
    text: 'Fluticasone 50 microgram/dose nasal spray',
    dosage: {
      text: '2 sprays in each nostril, once a day',
      dose: [2, 'sprays'],
      times: [1, 'd'],
      route: 'nasal',
    },
  },
  prednisone: tablets(
    '312615',
    'prednisone 20 MG Oral Tablet',
    'Prednisone 20 mg tablet',
    2,
    1,
    'with food, for 5 days',
  ),
  sertraline: tablets('312941', 'sertraline 50 MG Oral Tablet', 'Sertraline 50 mg tablet', 1, 1),
  escitalopram: tablets('349332', 'escitalopram 10 MG Oral Tablet', 'Escitalopram 10 mg tablet', 1, 1),
  fluoxetine: capsules('310385', 'fluoxetine 20 MG Oral Capsule', 'Fluoxetine 20 mg capsule', 1, 1),
  omeprazole: capsules(
    '198051',
    'omeprazole 20 MG Delayed Release Oral Capsule',
    'Omeprazole 20 mg gastro-resistant capsule',
    1,
    1,
    'before breakfast',
  ),
  ibuprofen: {
    ...tablets('197805', 'ibuprofen 400 MG Oral Tablet', 'Ibuprofen 400 mg tablet', 1, 3),
    dosage: {
      text: '1 tablet with food when needed, up to 3 times a day',
      dose: [1, 'tablet'],
      times: [3, 'd'],
      route: 'oral',
      asNeeded: true,
    },
  },
  acetaminophen: {
    ...tablets('198440', 'acetaminophen 500 MG Oral Tablet', 'Acetaminophen 500 mg tablet', 2, 4),
    dosage: {
      text: '2 tablets when needed, up to 4 times a day',
      dose: [2, 'tablets'],
      times: [4, 'd'],
      route: 'oral',
      asNeeded: true,
    },
  },
  naproxen: tablets('198014', 'naproxen 500 MG Oral Tablet', 'Naproxen 500 mg tablet', 1, 2, 'with food'),
  amoxicillin: capsules(
    '308191',
    'amoxicillin 500 MG Oral Capsule',
    'Amoxicillin 500 mg capsule',
    1,
    3,
    'for 7 days',
  ),
  amoxicillinSuspension: {
    rxnorm: '239191',
    display: 'amoxicillin 50 MG/ML Oral Suspension',
    text: 'Amoxicillin 250 mg/5 mL oral suspension',
    dosage: { text: '5 mL, three times a day for 7 days', dose: [5, 'mL'], times: [3, 'd'], route: 'oral' },
  },
  azithromycin: tablets(
    '308460',
    'azithromycin 250 MG Oral Tablet',
    'Azithromycin 250 mg tablet',
    2,
    1,
    'for 3 days',
  ),
  nitrofurantoin: capsules(
    '1648755',
    'nitrofurantoin, macrocrystals 25 MG / nitrofurantoin, monohydrate 75 MG Oral Capsule',
    'Nitrofurantoin 100 mg modified-release capsule',
    1,
    2,
    'for 5 days',
  ),
  loratadine: tablets('311372', 'loratadine 10 MG Oral Tablet', 'Loratadine 10 mg tablet', 1, 1),
  cetirizine: tablets(
    '1014678',
    'cetirizine hydrochloride 10 MG Oral Tablet',
    'Cetirizine 10 mg tablet',
    1,
    1,
  ),
  hydrocortisone: {
    rxnorm: '106258',
    display: 'hydrocortisone 10 MG/ML Topical Cream',
    text: 'Hydrocortisone 1 % cream',
    dosage: {
      text: 'A thin layer on the affected skin, twice a day',
      dose: [1, 'application'],
      times: [2, 'd'],
      route: 'skin',
    },
  },
  alendronate: weekly(
    '904431',
    'alendronic acid 70 MG Oral Tablet',
    'Alendronic acid 70 mg tablet',
    1,
    '1 tablet, once a week, upright with water',
  ),
  allopurinol: tablets('197320', 'allopurinol 300 MG Oral Tablet', 'Allopurinol 300 mg tablet', 1, 1),
  ferrousSulfate: tablets(
    '310325',
    'ferrous sulfate 325 MG Oral Tablet',
    'Ferrous sulfate 325 mg tablet',
    1,
    1,
  ),
  sumatriptan: {
    ...tablets('313161', 'sumatriptan 50 MG Oral Tablet', 'Sumatriptan 50 mg tablet', 1, 1),
    dosage: {
      text: '1 tablet at the start of a migraine',
      dose: [1, 'tablet'],
      route: 'oral',
      asNeeded: true,
    },
  },
  levetiracetam: tablets('311289', 'levetiracetam 500 MG Oral Tablet', 'Levetiracetam 500 mg tablet', 1, 2),
  lamotrigine: tablets('198427', 'lamotrigine 100 MG Oral Tablet', 'Lamotrigine 100 mg tablet', 1, 2),
  methotrexate: weekly(
    '105585',
    'methotrexate 2.5 MG Oral Tablet',
    'Methotrexate 2.5 mg tablet',
    6,
    '6 tablets (15 mg), once a week on the same day',
  ),
  donepezil: tablets(
    '997223',
    'donepezil hydrochloride 10 MG Oral Tablet',
    'Donepezil 10 mg tablet',
    1,
    1,
    'at night',
  ),
  tamsulosin: capsules(
    '863669',
    'tamsulosin hydrochloride 0.4 MG Oral Capsule',
    'Tamsulosin 400 microgram modified-release capsule',
    1,
    1,
  ),
  anastrozole: tablets('199224', 'anastrozole 1 MG Oral Tablet', 'Anastrozole 1 mg tablet', 1, 1),
} as const satisfies Record<string, MedicineEntry>

export type MedicineKey = keyof typeof medicines

const perDay: Readonly<Record<number, string>> = {
  1: 'once a day',
  2: 'twice a day',
  3: 'three times a day',
  4: 'four times a day',
}

function tablets(rxnorm: string, display: string, text: string, each: number, times: number, when?: string) {
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

function capsules(rxnorm: string, display: string, text: string, each: number, times: number, when?: string) {
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

function weekly(rxnorm: string, display: string, text: string, each: number, words: string): MedicineEntry {
  return {
    rxnorm,
    display,
    text,
    dosage: { text: words, dose: [each, each === 1 ? 'tablet' : 'tablets'], times: [1, 'wk'], route: 'oral' },
  }
}
