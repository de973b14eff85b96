graph [ directed 0 node [ id 0 label "M&#252;nchen" x [ y 1 ] ] node [ id 1 ]
        edge [ source 0 target 1 weight 0.5 ] ]