/** Laboratory tests that are done together, by the keys of `measurements.ts`; the code of the panel is LOINC. */
export interface PanelEntry {
  readonly loinc: string
  readonly display: string
  readonly tests: readonly LabKey[]
  /** At least so many days between two of them. */
  readonly every: number
}

export const panels = {
  metabolic: {
    loinc: '24321-2',
    display: 'Basic metabolic 2000 panel - Serum or Plasma',
    tests: ['glucose', 'creatinine', 'egfr', 'sodium', 'potassium'],
    every: 300,
  },
  lipids: {
    loinc: '24331-1',
    display: 'Lipid 1996 panel - Serum or Plasma',
    tests: ['cholesterol', 'triglycerides', 'hdl', 'ldl'],
    every: 330,
  },
  bloodCount: {
    loinc: '58410-2',
    display: 'CBC panel - Blood by Automated count',
    tests: ['hemoglobin', 'hematocrit', 'leukocytes', 'platelets'],
    every: 300,
  },
} as const satisfies Record<string, PanelEntry>

export type PanelKey = keyof typeof panels

/** A test: LOINC code and name, unit (UCUM), digits after the point and the range that counts as normal. */
export interface LabEntry {
  readonly loinc: string
  readonly display: string
  readonly text: string
  readonly unit: string
  readonly digits: number
  readonly range: { readonly low?: number; readonly high?: number }
  readonly women?: { readonly low?: number; readonly high?: number }
}

export const labs = {
  hba1c: {
    loinc: '4548-4',
    display: 'Hemoglobin A1c/Hemoglobin.total in Blood',
    text: 'HbA1c',
    unit: '%',
    digits: 1,
    range: { low: 4, high: 5.6 },
  },
  glucose: {
    loinc: '2345-7',
    display: 'Glucose [Mass/volume] in Serum or Plasma',
    text: 'Glucose',
    unit: 'mg/dL',
    digits: 0,
    range: { low: 70, high: 99 },
  },
  creatinine: {
    loinc: '2160-0',
    display: 'Creatinine [Mass/volume] in Serum or Plasma',
    text: 'Creatinine',
    unit: 'mg/dL',
    digits: 2,
    range: { low: 0.7, high: 1.3 },
    women: { low: 0.5, high: 1.1 },
  },
  egfr: {
    loinc: '98979-8',
    display:
      'Glomerular filtration rate/1.73 sq M.predicted [Volume Rate/Area] in Serum, Plasma or Blood by Creatinine-based formula (CKD-EPI 2021)',
    text: 'Estimated GFR',
    unit: 'mL/min/{1.73_m2}',
    digits: 0,
    range: { low: 60 },
  },
  sodium: {
    loinc: '2951-2',
    display: 'Sodium [Moles/volume] in Serum or Plasma',
    text: 'Sodium',
    unit: 'mmol/L',
    digits: 0,
    range: { low: 135, high: 145 },
  },
  potassium: {
    loinc: '2823-3',
    display: 'Potassium [Moles/volume] in Serum or Plasma',
    text: 'Potassium',
    unit: 'mmol/L',
    digits: 1,
    range: { low: 3.5, high: 5.1 },
  },
  cholesterol: {
    loinc: '2093-3',
    display: 'Cholesterol [Mass/volume] in Serum or Plasma',
    text: 'Total cholesterol',
    unit: 'mg/dL',
    digits: 0,
    range: { high: 200 },
  },
  triglycerides: {
    loinc: '2571-8',
    display: 'Triglyceride [Mass/volume] in Serum or Plasma',
    text: 'Triglycerides',
    unit: 'mg/dL',
    digits: 0,
    range: { high: 150 },
  },
  hdl: {
    loinc: '2085-9',
    display: 'Cholesterol in HDL [Mass/volume] in Serum or Plasma',
    text: 'HDL cholesterol',
    unit: 'mg/dL',
    digits: 0,
    range: { low: 40 },
    women: { low: 50 },
  },
  ldl: {
    loinc: '13457-7',
    display: 'Cholesterol in LDL [Mass/volume] in Serum or Plasma by calculation',
    text: 'LDL cholesterol, calculated',
    unit: 'mg/dL',
    digits: 0,
    range: { high: 130 },
  },
  hemoglobin: {
    loinc: '718-7',
    display: 'Hemoglobin [Mass/volume] in Blood',
    text: 'Hemoglobin',
    unit: 'g/dL',
    digits: 1,
    range: { low: 13.5, high: 17.5 },
    women: { low: 12, high: 15.5 },
  },
  hematocrit: {
    loinc: '4544-3',
    display: 'Hematocrit [Volume Fraction] of Blood by Automated count',
    text: 'Hematocrit',
    unit: '%',
    digits: 0,
    range: { low: 40, high: 52 },
    women: { low: 36, high: 47 },
  },
  leukocytes: {
    loinc: '6690-2',
    display: 'Leukocytes [#/volume] in Blood by Automated count',
    text: 'White blood cells',
    unit: '10*3/uL',
    digits: 1,
    range: { low: 4, high: 11 },
  },
  platelets: {
    loinc: '777-3',
    display: 'Platelets [#/volume] in Blood by Automated count',
    text: 'Platelets',
    unit: '10*3/uL',
    digits: 0,
    range: { low: 150, high: 400 },
  },
  ferritin: {
    loinc: '2276-4',
    display: 'Ferritin [Mass/volume] in Serum or Plasma',
    text: 'Ferritin',
    unit: 'ng/mL',
    digits: 0,
    range: { low: 30, high: 300 },
    women: { low: 15, high: 150 },
  },
  tsh: {
    loinc: '3016-3',
    display: 'Thyrotropin [Units/volume] in Serum or Plasma',
    text: 'TSH',
    unit: 'm[IU]/L',
    digits: 2,
    range: { low: 0.4, high: 4.5 },
  },
  urate: {
    loinc: '3084-1',
    display: 'Urate [Mass/volume] in Serum or Plasma',
    text: 'Uric acid',
    unit: 'mg/dL',
    digits: 1,
    range: { low: 3.4, high: 7 },
    women: { low: 2.4, high: 6 },
  },
  inr: {
    loinc: '6301-6',
    display: 'INR in Platelet poor plasma by Coagulation assay',
    text: 'INR',
    unit: '{INR}',
    digits: 1,
    range: { low: 0.9, high: 1.2 },
  },
  natriureticPeptide: {
    loinc: '33762-6',
    display: 'Natriuretic peptide.B prohormone N-Terminal [Mass/volume] in Serum or Plasma',
    text: 'NT-proBNP',
    unit: 'pg/mL',
    digits: 0,
    range: { high: 450 },
  },
  crp: {
    loinc: '1988-5',
    display: 'C reactive protein [Mass/volume] in Serum or Plasma',
    text: 'C-reactive protein',
    unit: 'mg/L',
    digits: 1,
    range: { high: 8 },
  },
  albuminRatio: {
    loinc: '9318-7',
    display: 'Albumin/Creatinine [Mass Ratio] in Urine',
    text: 'Urine albumin to creatinine ratio',
    unit: 'mg/g',
    digits: 0,
    range: { high: 30 },
  },
  psa: {
    loinc: '2857-1',
    display: 'Prostate specific Ag [Mass/volume] in Serum or Plasma',
    text: 'PSA',
    unit: 'ng/mL',
    digits: 1,
    range: { high: 4 },
  },
  bilirubin: {
    loinc: '1975-2',
    display: 'Bilirubin.total [Mass/volume] in Serum or Plasma',
    text: 'Total bilirubin',
    unit: 'mg/dL',
    digits: 1,
    // A newborn's first days; the threshold for treatment depends on age in hours.
    range: { high: 12 },
  },
} as const satisfies Record<string, LabEntry>

export type LabKey = keyof typeof labs
